// The key file of a Google service account.

import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder } from "../../../support/folder.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
export { publicKey };
export const EMAIL = "gateway@p.iam.gserviceaccount.com";

/** Writes the file. `more` overrides its fields. */
export function keyFile(token_uri: string, more: object = {}): string {
  const file = join(folder(), "sa.json");
  const account = {
    type: "service_account",
    client_email: EMAIL,
    private_key_id: "k1",
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
  };
  writeFileSync(file, JSON.stringify({ ...account, token_uri, ...more }, null, 2));
  return file;
}
