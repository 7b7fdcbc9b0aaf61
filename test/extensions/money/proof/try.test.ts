import { it } from "node:test";
import { threeDays, findingsIn, command, publicKeyOf, textOfFile } from "/tmp/w/proof/test/extensions/money/proof/sealed-books.ts";
it("x", async () => {
  const s = await threeDays();
  console.log(textOfFile(s.dir,"days.jsonl"));
  console.log(await findingsIn(s.dir));
  for (const args of [["seal","verify"],["seal","verify",s.dir],["audit"],["books","rebuild"],["seal","head"],["audit"],["seal","verify"]]) {
   const r = await command(s.dir, args);
   console.log(args.join(" "), r.code, r.stdout, r.stderr);
  }
});
