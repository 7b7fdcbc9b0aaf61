// The reply of Try it: read as a stream or as a whole, and shown while it comes.
import { $ } from "./dom.js";
import { number } from "./words.js";

/** Pixels above the end at which somebody still reads along. */
const NEAR_END = 30;

/** The events of a stream as their data, as they come. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) if (event.startsWith("data: ")) yield event.slice(6);
  }
}

/** The choices of a reply or of an event. Throws what went wrong, if it says that. */
function choiceOf({ choices, error }) {
  if (error) throw new Error(`${error.code}: ${error.message}`);
  return choices?.[0];
}

/** `report` shows how far it is. */
export function createReply(report) {
  const calls = []; // by their index
  let content = "";
  let reasoning = "";
  let frame = null;

  function addCall({ index, function: { name = "", arguments: text = "" } = {} }, at) {
    calls[index ?? at] ??= { name: "", text: "" };
    calls[index ?? at].name += name;
    calls[index ?? at].text += text;
  }

  function add({ content: text, reasoning_content: thought, tool_calls: called }) {
    content += text ?? "";
    reasoning += thought ?? "";
    called?.forEach(addCall);
    // Once for however many pieces come meanwhile.
    if (frame === null) frame = requestAnimationFrame(draw);
  }

  function draw() {
    frame = null;
    const box = $("reply");
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
    const said = calls.map(({ name, text }) => `→ calls ${name}(${text})`);
    box.textContent = [content, ...said].filter(Boolean).join("\n\n");
    $("thoughts").textContent = reasoning;
    $("reasoned").textContent = reasoning ? `${number(reasoning.length)} characters` : "none";
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  }

  async function readStream(body) {
    let finish = null;
    let isWhole = false;
    for await (const data of eventsOf(body)) {
      isWhole = data === "[DONE]";
      const choice = isWhole ? undefined : choiceOf(JSON.parse(data));
      if (!choice) continue;
      report("Streaming …");
      add(choice.delta ?? {});
      finish = choice.finish_reason ?? finish;
    }
    if (!isWhole) throw new Error("The stream broke off.");
    return finish;
  }

  draw();
  return {
    /** What has come. It is drawn at the latest when the browser next draws. */
    content: () => content,
    /** Resolves with the finish reason. Rejects with what went wrong. */
    async read(response) {
      const type = response.headers.get("content-type");
      if (type?.startsWith("text/event-stream")) return await readStream(response.body);
      const choice = choiceOf(await response.json());
      add(choice.message);
      return choice.finish_reason;
    },
  };
}
