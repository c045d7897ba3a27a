/** A JSON value, as `JSON.parse` returns it (RFC 8259 section 3). */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** A JSON object, such as the context of a condition or the data of an event. */
export type JsonObject = { readonly [name: string]: JsonValue };
