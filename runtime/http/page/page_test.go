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
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("status %d, %s", w.Code, w.Header().Get("Content-Type"))
	}
	for _, found := range regexp.MustCompile(`(?i)(?:https?:)?//[a-z]|\son[a-z]+=|\sstyle=|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(`).FindAllString(body, -1) {
		t.Errorf("the page has %q", found)
	}
	if strings.Contains(body, "{{") {
		t.Error("a part of the page is missing")
	}
	if n := strings.Count(body, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	policy := w.Header().Get("Content-Security-Policy")
	if strings.Count(policy, "'sha256-") != 2 || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'; trusted-types 'none'") {
		t.Errorf("policy %s", policy)
	}
	for _, m := range regexp.MustCompile(`\$\("([a-z_-]+)"\)`).FindAllStringSubmatch(body, -1) {
		if !strings.Contains(body, `id="`+m[1]+`"`) {
			t.Errorf("the script looks for #%s", m[1])
		}
	}
}
