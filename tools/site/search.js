// Runs before the theme's search worker, which would read "--memory" as "without memory". search.py gives the row of a name the word
// row___memory, and each section that mentions a flag in_row___memory. Queries for names ask for these words too.
let rows = new Set();
const word = name => "row_" + name.toLowerCase().replaceAll(/\W/g, "_");

addEventListener("message", ({data: message}) => {
  if (message.type === 0) rows = new Set(message.data.docs.flatMap(doc => doc.rows?.split(" ") ?? []));
  if (message.type === 2) message.data = message.data.trim().split(/\s+/).map(rewrite).join(" ");
});

function rewrite(typed, _, {length}) {
  const row = word(typed), flag = word("--" + typed);
  if (/^-+[a-z]/i.test(typed)) return [...rows].some(r => r.startsWith(row)) ? `${row}^9 ${row} in_${row}^1` : typed.replace(/^-+/, "");
  if (/[_.[]/.test(typed) && rows.has(row)) return `${row}^9 ${typed}`;
  return length === 1 && !typed.includes("_") && rows.has(flag) ? `${typed} in_${flag}^1` : typed;
}

// Results name the words of a query that they lack: not these.
const post = postMessage;
self.postMessage = message => {
  for (const hit of message.data?.items?.flat() ?? [])
    for (const term of Object.keys(hit.terms)) if (/^(in_)?row_/.test(term)) delete hit.terms[term];
  post(message);
};
