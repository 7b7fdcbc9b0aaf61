// The manual's pages, as the gateway has them: #manual/TOPIC.
import { $, fill, h } from "./dom.js";
import { elementsOf, inline } from "./markdown.js";
import { getText } from "./net.js";
import { addPart } from "./parts.js";

let isListed = false;

/** The list of topics, read when it is first looked at. Resolves with the name of the first. */
async function listTopics() {
  if (isListed) return;
  const contents = await getText("/manual");
  const entries = [...contents.matchAll(/^- \[(.+)\]\((.+)\.md\): (.*)$/gm)];
  fill(
    $("topics"),
    entries.map(([, title, topic, summary]) =>
      h("li", {}, h("a", { href: `#manual/${topic}`, title: summary }, inline(title))),
    ),
  );
  isListed = true;
}

async function showPage(topic) {
  const page = $("page");
  const text = await getText(`/manual/${encodeURIComponent(topic)}`);
  page.replaceChildren(...elementsOf(text));
  for (const anchor of $("topics").querySelectorAll("a")) {
    if (anchor.hash === `#manual/${topic}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  window.scrollTo(0, 0);
}

addPart("manual", async (path) => {
  try {
    await listTopics();
    const first = $("topics").querySelector("a")?.hash.slice("#manual/".length);
    await showPage(path || first);
    if (path) $("page").focus({ preventScroll: true });
  } catch (error) {
    fill($("page"), h("p", { class: "bad" }, error.message));
  }
});
