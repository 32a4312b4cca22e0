package page

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestPage checks that the page requests nothing from other hosts, never makes
// HTML of text, and that its policy allows its own script and style only.
func TestPage(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	body := w.Body.String()
	ours := string(part("page.html")) + string(part("style.css"))
	for _, name := range own {
		ours += strings.ReplaceAll(string(part(name)), "http://www.w3.org/1998/Math/MathML", "") // names a kind of element
	}
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("status %d, %s", w.Code, w.Header().Get("Content-Type"))
	}
	for _, found := range regexp.MustCompile(`(?i)(?:https?:)?//[a-z]|\son[a-z]+=|\sstyle=|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(`).FindAllString(ours, -1) {
		t.Errorf("the page has %q", found)
	}
	if missing := regexp.MustCompile(`\{\{[a-z.]+\}\}`).FindString(body); missing != "" {
		t.Errorf("%s is missing", missing)
	}
	if n := strings.Count(ours, "<script"); n != 2 {
		t.Errorf("%d scripts", n)
	}
	for _, name := range libraries {
		if text := string(part(name)); !strings.Contains(text, "opyright") || strings.Contains(text, "</script") {
			t.Errorf("%s has no license, or ends its element", name)
		}
	}
	policy := w.Header().Get("Content-Security-Policy")
	if strings.Count(policy, "'sha256-") != 3 || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'; trusted-types 'none'") {
		t.Errorf("policy %s", policy)
	}
	for _, m := range regexp.MustCompile(`\$\("([a-z_-]+)"\)`).FindAllStringSubmatch(body, -1) {
		if !strings.Contains(body, `id="`+m[1]+`"`) {
			t.Errorf("the script looks for #%s", m[1])
		}
	}
}
