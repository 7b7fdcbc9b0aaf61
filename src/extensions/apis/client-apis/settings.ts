// The setting that says in which formats clients may ask, beside chat completions.
import { defineSetting } from "../../../config/setting.ts";
import type { Config } from "../../../core/config.ts";
import { array, literal, type Infer } from "../../../core/schema/checker.ts";

/** `messages`: Anthropic's Messages API. `responses`: OpenAI's Responses API. */
const apiName = literal("messages", "responses");
export type ApiName = Infer<typeof apiName>;

/** Absent: none. Their paths are then unknown. */
export const apis = defineSetting("apis", [], () => array(apiName), { fixed: true });

/** Whether a configuration switches this API on. */
export const apiEnabled = (config: Config, name: ApiName): boolean =>
  apis.of(config).includes(name);
