// The manual's pages, as the gateway has them: #manual/TOPIC.
import { $, fill, h } from "./dom.js";
import { elementsOf, inline } from "./markdown.js";
import { getText, view } from "./net.js";
import { addPart, markCurrent } from "./parts.js";

const TOPIC = /^- \[(.+)\]\((.+)\.md\): (.*)$/gm;

const page = view({
  async load(wanted) {
    const topics = [...(await getText("/manual")).matchAll(TOPIC)];
    const topic = wanted || topics[0][2];
    return { topics, topic, text: await getText(`/manual/${encodeURIComponent(topic)}`) };
  },
  draw({ topics, topic, text }, wanted) {
    const item = ([, title, name, summary]) =>
      h("li", h("a", { href: `#manual/${name}`, title: summary }, inline(title)));
    $("topics").replaceChildren(...topics.map(item));
    markCurrent($("topics"), `#manual/${topic}`);
    $("page").replaceChildren(...elementsOf(text));
    window.scrollTo(0, 0);
    if (wanted) $("page").focus({ preventScroll: true });
  },
  fail: (message) => fill($("page"), h("p", { class: "bad" }, message)),
});

addPart("manual", (topic) => page(topic));
