// Amazon Bedrock's Converse and ConverseStream as a wire format of providers.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { findLack } from "../../routing/capabilities/index.ts";
import { refusal } from "../provider-words/index.ts";
import { createConverseDecoder, messageIn } from "./decoder.ts";
import { eventStream } from "./event-stream.ts";
import { findSchemaLack } from "../schemas/index.ts";
import { findMediaLack } from "../turns/index.ts";
import { requestBody, typeRule } from "./request.ts";

export const converseDialect: Dialect = {
  framing: eventStream,
  request(chat, target) {
    const model = encodeURIComponent(target.upstreamModel);
    const method = chat.stream ? "converse-stream" : "converse";
    return { path: `/model/${model}/${method}`, body: requestBody(chat, target) };
  },
  isReply: (json) => messageIn(json) !== undefined,
  decoder: createConverseDecoder,
  refusal(status, headers, body) {
    const { message, Message } = asObject(body);
    // `ThrottlingException:http://...`
    const [type] = (headers.get("x-amzn-errortype") ?? "").split(":", 1);
    return refusal(status, headers, { message: message ?? Message, type });
  },
};

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect("converse"), {
    thinkingSwitches: ["none"],
    unsupported: ["logprobs", "audio", "json_object"],
    appended: { path: "/model/...", end: /\/model(\/.*)?$/ },
    mediaRules: "anthropic",
    create: () => converseDialect,
  });
  gateway.on(findLack, findMediaLack("converse", typeRule));
  gateway.on(findLack, findSchemaLack("converse"));
}
