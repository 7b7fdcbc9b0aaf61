// What /openapi.json says of this API. The requests' schemas are those of the checks; of replies
// description.json says what is always there.
import type { Config } from "../../../core/config.ts";
import { apiEnabled } from "../client-apis/index.ts";
import { countRequest, messagesRequest } from "../messages-input/index.ts";
import type { Description } from "../openapi/index.ts";
import described from "./description.json" with { type: "json" };

export function describe(config: Config): Description | undefined {
  if (!apiEnabled(config, "messages")) return undefined;
  const { operations, schemas } = described;
  const MessagesRequest = messagesRequest.schema;
  const MessagesCountRequest = countRequest.schema;
  return { operations, schemas: { ...schemas, MessagesRequest, MessagesCountRequest } };
}
