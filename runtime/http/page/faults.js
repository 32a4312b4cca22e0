
/* Faults that a person at the browser can do something about. */
class Fault extends Error {
  constructor(text, label = "", act = null) { super(text); this.label = label; this.act = act; }
}
class Gone extends Fault {}
const here = location.host || "this address";
function openKey() {
  if (!$("settings").open) $("settings").showModal();
  $("key").focus();
}
const noServer = () => new Gone(`The server at ${here} does not answer. It may have stopped, or the network is down. Start it again where it runs, then try again.`);
const cutOff = () => new Fault(`The connection to ${here} ended before the answer did. The server may have stopped. Start it again if so, then choose Regenerate.`);
const keyFault = () => new Fault($("key").value ? "The server does not accept this API key. Check it for missing characters, or ask whoever runs the server." :
  "This server asks for an API key. Whoever runs it has one for you.", "Enter API key", openKey);

/* faultOf is the fault of a reply that is an error. */
async function faultOf(reply) {
  if (reply.status === 401) return keyFault();
  const said = (await reply.json().catch(() => null))?.error?.message;
  const wait = Number(reply.headers.get("Retry-After"));
  const later = wait > 0 ? ` Try again in ${wait} ${wait === 1 ? "second" : "seconds"}.` : "";
  return new Fault((said ?? `The server answered with status ${reply.status}.`) + (reply.status === 429 || reply.status === 503 ? later : ""));
}

/* ask the server: a reply that is not an error. */
async function call(url, options = {}) {
  let reply;
  try { reply = await fetch(url, {headers: headers(), ...options}); } catch (e) { throw e.name === "AbortError" ? e : noServer(); }
  if (!reply.ok) throw await faultOf(reply);
  return reply;
}

/* banner shows a text above the input; "" hides it. */
function banner(text, label = "", act = null) {
  $("banner").replaceChildren(...(text ? [el("span", {}, text), ...(act ? [button("", label, act)] : []), button("quiet", "×", () => banner(""), "Close the message")] : []));
  $("banner").hidden = !text;
}
