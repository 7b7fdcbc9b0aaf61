// Starts the page with the first event. If the demo key is valid, opens the view Try it with that
// key filled in.
import { $ } from "./dom.js";
import { follow, live, start } from "./views.js";

start(() => {
  $("version").textContent = live.status.version;
  const isDemo = live.status.demo_key;
  if (isDemo) $("key").value ||= "sk-demo";
  if (isDemo && location.hash === "") history.replaceState(null, "", "#try");
  follow();
  if (isDemo) $("send").focus();
});
