/** Typed client for the REST API of Tributary. The paths and types are generated from its OpenAPI description. */

import createFetchClient from "openapi-fetch";
import type { Client, FetchResponse, MaybeOptionalInit } from "openapi-fetch";
import type { HttpMethod, MediaType, PathsWithMethod, RequiredKeysOf } from "openapi-typescript-helpers";
import type { components, paths } from "./openapi.js";
import { sender } from "./sender.js";

export type { components, paths };
export { TributaryError, type FieldError } from "./error.js";

/** Types of the objects that the API returns, by name: `Schemas["EventOut"]`. */
export type Schemas = components["schemas"];

export interface TributaryOptions {
  /** Address of the server, such as `https://links.example.com`. */
  server: string;
  /** Private key: `ak_live_…` or `ak_test_…`. Never ship it to browsers. */
  apiKey: string;
  /** How often a call is repeated after 429 and 503, if it is safe to repeat. Default: 3. */
  retries?: number;
  /** Milliseconds until the server must have begun to answer. Default: 60,000. */
  timeoutMs?: number;
  /** Replaces `fetch`, for example to use a proxy. */
  fetch?: typeof globalThis.fetch;
}

type Init<P extends keyof paths, M extends HttpMethod> = M extends keyof paths[P] ? MaybeOptionalInit<paths[P], M> : never;
/** Optional, unless the operation needs parameters or a body. */
type InitArguments<I> = RequiredKeysOf<I> extends never ? [init?: I] : [init: I];
type Success<O> = O extends Record<string | number, unknown>
  ? NonNullable<FetchResponse<O, object, MediaType>["data"]>
  : never;
/** What a call returns: nothing for 204. */
export type Result<P extends keyof paths, M extends HttpMethod> = M extends keyof paths[P]
  ? [Success<paths[P][M]>] extends [never]
    ? void
    : Success<paths[P][M]>
  : never;

type Call<M extends HttpMethod> = <P extends PathsWithMethod<paths, M>>(
  path: P,
  ...init: InitArguments<Init<P, M>>
) => Promise<Result<P, M>>;

/** A page of a list. */
interface Page<T> {
  data: T[];
  meta: { hasMore: boolean; cursor?: string | null };
}
type GetPath = PathsWithMethod<paths, "get">;
/** Paths of lists. */
export type ListPath = { [P in GetPath]: Result<P, "get"> extends Page<unknown> ? P : never }[GetPath];
/** The items of a list. */
export type Item<P extends ListPath> = Result<P, "get"> extends Page<infer T> ? T : never;

export interface Tributary {
  get: Call<"get">;
  post: Call<"post">;
  put: Call<"put">;
  patch: Call<"patch">;
  delete: Call<"delete">;
  /** All items of a list, page after page. */
  items<P extends ListPath>(path: P, ...init: InitArguments<Init<P, "get">>): AsyncGenerator<Item<P>, void, undefined>;
  /** The client underneath, for headers of the response and for streams. Its calls fail in the same way. */
  http: Client<paths>;
}

/** What this file reads of an `init`. */
interface AnyInit {
  params?: { query?: object };
}

/** Creates a client. Sends nothing yet. */
export function createTributary(options: TributaryOptions): Tributary {
  const http = createFetchClient<paths>({
    baseUrl: options.server.replace(/\/+$/, ""),
    headers: { Authorization: `Bearer ${options.apiKey}` },
    // The API does not redirect, and the key must not go elsewhere.
    redirect: "manual",
    fetch: sender(options),
  });
  // The types of the generated paths are checked where a call is made. Here, a call is a method, a path and an init.
  const request = http.request as unknown as (method: string, path: string, init?: object) => Promise<{ data?: unknown }>;
  const call = <M extends HttpMethod>(method: M): Call<M> =>
    (async (path: string, init?: object) => (await request(method, path, init)).data) as unknown as Call<M>;

  async function* items(path: string, init: AnyInit = {}): AsyncGenerator<unknown, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const query = { ...init.params?.query, ...(cursor ? { cursor } : {}) };
      const { data } = await request("get", path, { ...init, params: { ...init.params, query } });
      const page = data as Page<unknown>;
      yield* page.data;
      cursor = page.meta.hasMore ? page.meta.cursor : null;
    } while (cursor);
  }

  return {
    get: call("get"),
    post: call("post"),
    put: call("put"),
    patch: call("patch"),
    delete: call("delete"),
    items: items as unknown as Tributary["items"],
    http,
  };
}
