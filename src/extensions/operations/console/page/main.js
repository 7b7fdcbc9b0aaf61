// Starts the page with the first event. Where the demo key holds, all that a first request needs is
// there at once.
import { $ } from "./dom.js";
import { follow, live, start } from "./views.js";

start(() => {
  if (live.status.demo_key) $("key").value ||= "sk-demo";
  if (live.status.demo_key && location.hash === "") location.replace("#try");
  follow();
});
