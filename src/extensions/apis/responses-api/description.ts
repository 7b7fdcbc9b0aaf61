// What /openapi.json says of this API. The request's schema is that of the check; of replies
// description.json says what is always there. Errors are those of chat completions.
import type { Config } from "../../../core/config.ts";
import { apiEnabled } from "../client-apis/index.ts";
import type { Description } from "../openapi/index.ts";
import { responsesRequest } from "../responses-input/index.ts";
import described from "./description.json" with { type: "json" };

export function describe(config: Config): Description | undefined {
  if (!apiEnabled(config, "responses")) return undefined;
  const { operations, schemas } = described;
  return { operations, schemas: { ...schemas, ResponsesRequest: responsesRequest.schema } };
}
