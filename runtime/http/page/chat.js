
const $ = id => document.getElementById(id);
const fields = ["system", "schema", "suffix", "temperature", "top_p", "max_tokens", "seed", "theme"];
const defaults = {max_tokens: "1024"};
const examples = {
  chat: ["Name three benefits of reading books.", "How do I reverse a string in Python?",
    "Explain in simple words why the sky is blue.", "Write a short email that thanks a colleague for help."],
  text: ["Once upon a time, there was a little girl named Lily.", "The old lighthouse keeper opened the door and saw",
    "My favorite recipe is simple. First, you", "The three most important things to know about the moon are"],
  rank: ["Which planet is red?\nMars looks red because of iron oxide.\nJupiter is the largest planet."],
};
const labels = {chat: "Answer", text: "Continuation", rank: "Ranking"};
let turns = [];        // the conversation: {role, content}; of messages {files}, of answers {thought, facts}
let mode = "chat";     // "text": the model has no chat template and continues texts; "rank": it ranks documents
let run = null;        // the AbortController of the answer in progress
let coming = null;     // that answer

for (const id of fields) {
  $(id).value = kept.read(local, id) ?? defaults[id] ?? "";
  $(id).addEventListener("change", () => { kept.write(local, id, $(id).value); paint(); });
}
$("key").value = kept.read(session, "key") ?? "";
$("key").addEventListener("change", () => { kept.write(session, "key", $("key").value || null); greet(); });
function paint() { document.documentElement.dataset.theme = $("theme").value; }
function headers() {
  const h = {"Content-Type": "application/json"};
  if ($("key").value) h.Authorization = "Bearer " + $("key").value;
  return h;
}
function say(text) { $("status").textContent = text; }

// greet shows the model's name and example prompts that fit it.
async function greet() {
  try {
    const props = await (await call("props")).json();
    if (turns.length) banner("");
    $("name").textContent = document.title = props.model.id;
    const serves = path => props.endpoints.includes(path);
    const before = mode;
    mode = serves("/v1/rerank") ? "rank" : serves("/v1/chat/completions") ? "chat" : "text";
    if (mode !== before && turns.length) fresh(); // of a model of another kind
    $("attach").hidden = mode !== "chat";
    $("after").hidden = mode !== "text" || !serves("/infill");
    $("text").placeholder = {chat: "Send a message", text: "Write the beginning of a text", rank: "A query, and each document in a line of its own"}[mode];
    if (mode === "chat") welcome("How can I help you?", "Ask a question, or start with one of these.", examples.chat);
    else if (mode === "text") welcome("Start a text", "This model has no chat template: it continues your text.", examples.text);
    else welcome("Rank documents", "Write the query in the first line, and each document in a line of its own.", examples.rank);
  } catch (e) { unavailable(e instanceof Fault ? e : new Fault("The answer of the server cannot be read. Is it an iflowc server?")); }
}

// unavailable says why the server cannot be used, and what to do.
function unavailable(fault) {
  const label = fault.label || "Try again", act = fault.act ?? greet;
  if (turns.length) { banner(fault.message, label, act); return; }
  welcome(fault.act === openKey ? "API key required" : fault instanceof Gone ? "The server does not answer" : "The model is not available", fault.message, []);
  $("examples").replaceChildren(el("li", {}, button("", label, act)));
}
function welcome(title, text, list) {
  $("welcome-title").textContent = title;
  $("welcome-text").textContent = text;
  $("examples").replaceChildren(...list.map(example => {
    const b = button("", example, () => { if (!run) ask(example); });
    return el("li", {}, b);
  }));
  $("welcome").hidden = turns.length > 0;
}
function button(kind, text, act, label = "") {
  const b = el("button", {type: "button", class: kind, "aria-label": label}, text);
  b.addEventListener("click", act);
  return b;
}

// copyText copies and says so on the button. Without a secure context (http from another host) the browser has no
// clipboard interface; there the selection is copied.
async function copyText(b, text) {
  let good = true;
  try { await navigator.clipboard.writeText(text); } catch {
    const area = el("textarea", {class: "hidden", "aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    good = document.execCommand("copy");
    area.remove();
    b.focus();
  }
  b.textContent = good ? "Copied" : "Copy failed";
  say(b.textContent);
  setTimeout(() => { b.textContent = "Copy"; }, 1500);
}

// show adds a message to the page.
function show(role, label, source) {
  const body = el("div", {class: "body"}), facts = el("span", {class: "facts"}), bar = el("div", {class: "bar"});
  const copy = button("quiet", "Copy", () => copyText(copy, source()), "Copy message");
  bar.append(copy, facts);
  const box = el("article", {class: "turn " + role, "aria-label": label}, body, bar);
  $("log").append(box);
  $("welcome").hidden = true;
  bar.hidden = false;
  return {box, body, bar, facts};
}
function reason(box, text) {
  let d = box.querySelector("details");
  if (!d) {
    d = el("details", {}, el("summary", {}, "Reasoning"), el("div", {}));
    box.prepend(d);
  }
  d.lastChild.textContent = text;
}

function request() {
  const body = {stream: true, stream_options: {include_usage: true}};
  for (const id of ["temperature", "top_p", "max_tokens", "seed"]) if ($(id).value !== "") body[id] = Number($(id).value);
  if ($("schema").value.trim()) body.response_format = {type: "json_schema", json_schema: {name: "answer", schema: parsed($("schema").value)}};
  if (mode === "text") {
    if (!$("after").hidden && $("suffix").value) body.suffix = $("suffix").value;
    return ["v1/completions", {...body, prompt: turns[turns.length - 1].content}];
  }
  const system = $("system").value.trim();
  return ["v1/chat/completions", {...body, messages: [...(system ? [{role: "system", content: system}] : []), ...turns.map(t => ({role: t.role, content: asSent(t)}))]}];
}

function parsed(schema) {
  try { return JSON.parse(schema); } catch (e) { throw new Error("The answer schema in Settings is not JSON: " + e.message); }
}

// post sends a request and returns the reply.
const post = (url, body) => call(url, {method: "POST", body: JSON.stringify(body), signal: run.signal});

// rank ranks the lines of the last message.
async function rank(a, draw) {
  const [query, ...documents] = turns[turns.length - 1].content.split("\n").filter(line => line.trim());
  if (!documents.length) throw new Error("Write each document in a line of its own, below the query.");
  const {results, usage} = await (await post("v1/rerank", {query, documents})).json();
  a.tokens = usage.prompt_tokens;
  a.content = results.map(r => r.relevance_score.toFixed(4) + "  " + r.document.text).join("\n");
  draw();
}

// events yields the JSON of a stream of server-sent events.
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read().catch(e => { throw e.name === "AbortError" ? e : cutOff(); });
    if (done) return;
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      if (line === "data: [DONE]") return;
      yield JSON.parse(line.slice(6));
    }
  }
}

// summary is the line below an answer.
function summary(a) {
  const rate = (a.tokens - 1) / ((a.last - a.first) / 1000), parts = [];
  if (a.tokens) parts.push(a.tokens + (a.tokens === 1 ? " token" : " tokens"));
  if (a.tokens > 2 && a.last > a.first) parts.push(rate.toFixed(1) + " tokens per second");
  if (a.finish === "length") parts.push("token limit reached");
  if (a.failed === "stopped") parts.push("stopped");
  return parts.join(" · ");
}

// receive reads an answer into a; draw shows what has come.
async function receive(a, draw) {
  if (mode === "rank") return rank(a, draw);
  const reply = await post(...request());
  for await (const chunk of events(reply.body)) {
    if (chunk.error) throw new Error(chunk.error.message);
    const choice = chunk.choices?.[0], more = choice?.delta?.content ?? choice?.text ?? "", thinking = choice?.delta?.reasoning_content ?? "";
    a.finish = choice?.finish_reason ?? a.finish;
    if (chunk.usage) a.tokens = chunk.usage.completion_tokens;
    if (!more && !thinking) continue;
    a.content += more;
    a.thought += thinking;
    if (!chunk.usage) a.tokens++;
    a.last = performance.now();
    a.first ||= a.last;
    draw();
  }
}

// drawing shows an answer and returns what draws it again.
function drawing(a) {
  const {box, body, bar, facts} = show("assistant", labels[mode], () => a.content);
  body.classList.add(mode === "chat" ? "md" : "plain");
  const draw = () => {
    if (a.thought) reason(box, a.thought);
    if (mode === "chat") renderMarkdown(body, a.content);
    else body.textContent = a.content;
  };
  return {box, bar, facts, draw};
}

async function answer() {
  const mine = turns; // a new chat begins with another list
  const a = {role: "assistant", content: "", thought: "", tokens: 0, first: 0, last: 0, finish: "", failed: ""};
  const {box, bar, facts, draw} = drawing(a);
  let drawn = false, pause = 0; // a long text takes longer to draw, and is drawn less often
  const soon = () => {
    if (drawn) return;
    drawn = true;
    setTimeout(() => requestAnimationFrame(() => {
      const from = performance.now(), low = nearEnd();
      drawn = false;
      draw();
      if (low) scroll();
      pause = 4 * (performance.now() - from);
    }), pause);
  };
  box.classList.add("waiting");
  for (const b of document.querySelectorAll(".again")) b.remove();
  bar.hidden = true;
  banner("");
  scroll();
  run = new AbortController();
  coming = a;
  busy(true);
  say("The model is answering.");
  let fault = null;
  try { await receive(a, soon); } catch (e) { a.failed = e.name === "AbortError" ? "stopped" : e.message; fault = e; }
  draw();
  box.classList.remove("waiting");
  bar.hidden = false;
  facts.textContent = a.facts = summary(a);
  if (a.failed && a.failed !== "stopped") facts.append(" ", el("span", {class: "bad"}, a.failed), ...(fault.act ? [" ", button("act", fault.label, fault.act)] : []));
  if (a.content || a.failed === "stopped") mine.push(keptAnswer(a));
  bar.insertBefore(button("quiet again", "Regenerate", () => again(box), "Regenerate the answer"), facts);
  say(a.failed && a.failed !== "stopped" ? "Failed: " + a.failed : "Answer: " + a.content);
  if (mine === turns) keepChat(turns);
  run = coming = null;
  busy(false);
  scroll();
}
const keptAnswer = a => ({role: "assistant", content: a.content, ...(a.thought ? {thought: a.thought} : {}), facts: a.facts ?? summary({...a, failed: "stopped"})});

// again replaces the last answer.
function again(box) {
  if (run || !box.isConnected) return;
  if (turns[turns.length - 1].role === "assistant") turns.pop();
  box.remove();
  answer();
}
function busy(on) {
  $("send").hidden = on;
  $("stop").hidden = !on;
}
function nearEnd() { const m = $("main"); return m.scrollHeight - m.scrollTop - m.clientHeight < 80; }
function scroll() { $("main").scrollTop = $("main").scrollHeight; }
function grow() {
  $("text").style.height = "auto";
  $("text").style.height = $("text").scrollHeight + 2 + "px";
}

function ask(text) {
  if (turns.length && turns[turns.length - 1].role === "user") turns.pop(); // its answer failed: ask this in its place
  turns.push({role: "user", content: text, ...(files.length ? {files} : {})});
  files = [];
  showFiles();
  showMine(turns[turns.length - 1]);
  keepChat(turns);
  answer();
}
function showMine(turn) {
  const {body} = show("user", mode === "chat" ? "Your message" : "Your text", () => turn.content);
  body.textContent = turn.content;
  if (turn.files?.length) body.prepend(el("ul", {class: "files"}, ...fileMarks(turn.files)));
}

// restore shows the conversation that the browser has kept.
function restore() {
  const chat = keptChat();
  if (!chat?.turns.length) return;
  ({mode, turns} = chat);
  let last;
  for (const turn of turns) {
    if (turn.role === "user") { showMine(turn); continue; }
    last = drawing(turn);
    last.draw();
    last.facts.textContent = turn.facts ?? "";
  }
  if (turns[turns.length - 1].role === "user") { last = drawing({content: ""}); last.facts.textContent = "no answer"; }
  last.bar.insertBefore(button("quiet again", "Regenerate", () => again(last.box), "Regenerate the answer"), last.facts);
  scroll();
}
$("ask").addEventListener("submit", e => {
  e.preventDefault();
  const text = $("text").value;
  if (run || !text.trim() && !files.length) return;
  $("text").value = "";
  grow();
  ask(text);
});
$("text").addEventListener("input", grow);
$("text").addEventListener("keydown", e => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); $("ask").requestSubmit(); }
});
$("stop").addEventListener("click", () => { run?.abort(); $("text").focus(); });
$("fresh").addEventListener("click", () => { fresh(); greet(); $("text").focus(); });
function fresh() {
  run?.abort();
  turns = [];
  keepChat(turns);
  banner("");
  $("log").replaceChildren();
  $("welcome").hidden = false;
  say("New chat.");
}
// An answer that has not ended is kept as far as it has come.
window.addEventListener("pagehide", () => { if (coming?.content) keepChat([...turns, keptAnswer(coming)]); });
$("open").addEventListener("click", () => $("settings").showModal());
document.addEventListener("keydown", e => {
  if (e.key === "Escape" && run && !$("settings").open) run.abort();
  if (e.altKey && e.code === "KeyN") { e.preventDefault(); $("fresh").click(); }
  if (e.altKey && e.code === "KeyS") { e.preventDefault(); $("open").click(); }
});
// Where the on-screen keyboard covers the page in place of making it smaller (iOS), the page follows the visible part.
window.visualViewport?.addEventListener("resize", () => {
  const v = window.visualViewport;
  if (v.scale !== 1) return;
  document.body.style.height = v.height + "px";
  window.scrollTo(0, 0);
  if (nearEnd()) scroll();
});
watchFiles();
paint();
restore();
greet();
