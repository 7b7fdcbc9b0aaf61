(globalThis as any).TRACE = process.env.TRACE;
import { bundleActors, bundleGateway } from "/work/wt/sim/scripts/simulate/bundles.ts";
import { simulate } from "/work/wt/sim/scripts/simulate/run.ts";
const t0=Date.now();
const bundles = { gateway: await bundleGateway(), actors: await bundleActors() };
console.log("bundled", Date.now()-t0);
const [from,to,req]=process.argv.slice(2).map(Number);
for (let seed=from;seed<=to;seed++){ const t=Date.now(); const o=await simulate({seed,requests:req,bundles,only:process.env.ONLY?.split(",")}); console.log(seed,Date.now()-t,"ms",o.requests,o.steps,o.fingerprint,o.violations.length, o.faults.join()); if(o.violations.length){console.log(o.violations.slice(0,5).join("\n").slice(0,3000)); console.log(o.lastLines.slice(-25).join("\n")); break;} }
