
/* Text files that go into the next message. */
const filesLimit = 500000, filesMost = 20; // bytes together, files
let files = []; // {name, text}

/* textOfFile reads a file; the error says why it is none for a message. */
async function textOfFile(file) {
  if (file.size > filesLimit) throw new Error(`${file.name} has ${size(file.size)}; files of a message have at most ${size(filesLimit)} together.`);
  let text;
  try { text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer()); } catch (e) {
    throw new Error(e instanceof TypeError ? `${file.name} is not a text file (UTF-8).` : `${file.name} cannot be read.`);
  }
  if (text.includes("\0")) throw new Error(`${file.name} is not a text file (UTF-8).`);
  return text;
}
const size = n => n < 1000 ? n + " bytes" : n < 1e6 ? Math.round(n / 1000) + " kB" : (n / 1e6).toFixed(1) + " MB";
const fileName = name => name.replace(/[\x00-\x1f\x7f`]/g, "").slice(0, 200) || "file";

async function addFiles(list) {
  const wrong = [];
  for (const file of list) {
    try {
      const text = await textOfFile(file);
      if (files.length >= filesMost) throw new Error(`A message has at most ${filesMost} files; ${file.name} is left out.`);
      if (files.reduce((n, f) => n + f.text.length, text.length) > filesLimit) throw new Error(`${file.name} is left out: files of a message have at most ${size(filesLimit)} together.`);
      files.push({name: fileName(file.name), text});
    } catch (e) { wrong.push(e.message); }
  }
  showFiles();
  if (wrong.length) banner(wrong.join(" ")); else if (list.length) banner("");
  $("text").focus();
}

/* fileMarks are the names of files above a message. */
const fileMarks = (list, more = () => []) => list.map(f => el("li", {}, el("span", {}, f.name), " ", el("small", {}, size(new Blob([f.text]).size)), ...more(f)));
function showFiles() {
  $("files").replaceChildren(...fileMarks(files, f => [button("quiet", "×", () => { files = files.filter(x => x !== f); showFiles(); }, "Remove " + f.name)]));
  $("files").hidden = !files.length;
}

/* asSent is the text of a message with its files: each in a fence that is longer than those in it. */
function asSent(turn) {
  const parts = (turn.files ?? []).map(f => {
    const ticks = "`".repeat(Math.max(3, ...[...f.text.matchAll(/`+/g)].map(m => m[0].length + 1)));
    return `${f.name}:\n${ticks}${/\.([\w+-]{1,20})$/.exec(f.name)?.[1] ?? ""}\n${f.text.replace(/\n$/, "")}\n${ticks}`;
  });
  return [...parts, turn.content].filter(x => x).join("\n\n");
}

function watchFiles() {
  const has = e => mode === "chat" && e.dataTransfer?.types.includes("Files");
  $("attach").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", async () => { await addFiles([...$("file").files]); $("file").value = ""; });
  document.addEventListener("dragover", e => { if (has(e)) { e.preventDefault(); document.body.classList.add("drop"); } });
  document.addEventListener("dragleave", e => { if (!e.relatedTarget) document.body.classList.remove("drop"); });
  document.addEventListener("drop", e => {
    document.body.classList.remove("drop");
    if (has(e)) { e.preventDefault(); addFiles([...e.dataTransfer.files]); }
  });
  $("text").addEventListener("paste", e => { if (mode === "chat" && e.clipboardData?.files.length) { e.preventDefault(); addFiles([...e.clipboardData.files]); } });
}
