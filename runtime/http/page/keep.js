
/* What the browser keeps: settings and the conversation until they are deleted, the API key until the tab is closed. Where it
 * keeps nothing (private windows), the page works without. */
const kept = {
  read(store, name) { try { return store().getItem("iflowc." + name); } catch { return null; } },
  write(store, name, text) {
    try {
      if (text === null) store().removeItem("iflowc." + name);
      else store().setItem("iflowc." + name, text);
      return true;
    } catch { return false; }
  },
};
const local = () => localStorage, session = () => sessionStorage;

/* keepChat stores the conversation. */
function keepChat(list) {
  if (!list.length) { kept.write(local, "chat", null); return; }
  if (kept.write(local, "chat", JSON.stringify({mode, turns: list}))) return;
  kept.write(local, "chat", null);
  say("The browser has no room to keep this conversation.");
}

/* keptChat returns the conversation that was stored, as far as it has the form of one. */
function keptChat() {
  let chat;
  try { chat = JSON.parse(kept.read(local, "chat") ?? "null"); } catch { return null; }
  if (!chat || !Array.isArray(chat.turns) || !(chat.mode in labels)) return null;
  const text = x => typeof x === "string" ? x : "";
  const list = chat.turns.filter(t => t && ["user", "assistant"].includes(t.role)).map(t => ({
    role: t.role, content: text(t.content), ...(t.thought ? {thought: text(t.thought)} : {}), ...(t.facts ? {facts: text(t.facts)} : {}),
    ...(Array.isArray(t.files) ? {files: t.files.filter(f => f).map(f => ({name: text(f.name), text: text(f.text)}))} : {}),
  }));
  return {mode: chat.mode, turns: list};
}
