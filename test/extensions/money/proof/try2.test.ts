import { it } from "node:test";
import { readdirSync } from "node:fs";
import { threeDays, findingsIn, copyOf, edit, textOfFile, retire, A, B, C } from "./sealed-books.ts";
it("x", async () => {
  const s = await threeDays();
  const variants: [string, string][] = [["whole", s.dir]];
  const r = copyOf(s.dir); retire(r, [A, B, C]); variants.push(["retired", r]);
  console.log(await findingsIn(r));
  for (const [v, dir] of variants) {
    const files = [...readdirSync(dir+"/spend").filter(f=>f.endsWith("jsonl")).map(f=>"spend/"+f), ...readdirSync(dir+"/usage").filter(f=>f.endsWith("jsonl")).map(f=>"usage/"+f), "days.jsonl"];
    for (const file of files) {
      const n = textOfFile(dir, file).split("\n").length-1;
      const spoils: Record<string,(k:number)=>(l:string[])=>string[]> = {
        change: k => l => l.map((t,i)=>i===k?t.replace(/"(m|acme|beta|completed|USD|key_[0-9a-f]+|sp_\w+)"|"stream":false|"records":\d/, x=>x.includes("sp_")? x.replace(/.."/,'ff"'): x.replace(/.(?="?$)/,"7")):t),
        remove: k => l => l.filter((_,i)=>i!==k),
        insert: k => l => [...l.slice(0,k), l[k]!.replace(/sp_\w{8}/g,"sp_ffffffff"), ...l.slice(k)],
        double: k => l => [...l.slice(0,k), l[k]!, ...l.slice(k)],
        swap: k => l => k+1<l.length ? [...l.slice(0,k), l[k+1]!, l[k]!, ...l.slice(k+2)] : l,
        cut: k => l => l.slice(0,k),
      };
      for (const [kind, make] of Object.entries(spoils)) for (let k=0;k<n;k++) {
        if (kind==="swap"&&k===n-1) continue;
        const copy = copyOf(dir);
        const before = textOfFile(copy,file);
        edit(copy, file, make(k));
        if (textOfFile(copy,file)===before) { console.log("SAME", v, kind, file, k+1); continue; }
        const found = await findingsIn(copy);
        const near = found.filter(f=>{ const m=[...f.matchAll(new RegExp(file.replaceAll(".","\\.")+", line (\\d+)(?: \\(opened in line (\\d+)\\))?","g"))]; return m.some(x=>[x[1],x[2]].some(y=>Math.abs(Number(y)-k-1)<=1)); });
        if (!near.length) console.log("MISS", v, kind, file, k+1, JSON.stringify(found).slice(0,600));
      }
    }
  }
});
