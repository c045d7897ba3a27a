/**
 * The bytes that structure JSON. A scanner copies those that it needs into constants of its module,
 * which its hot loops read without access to another module.
 */
export const JSON_BYTES = {
  QUOTE: 0x22,
  BACKSLASH: 0x5c,
  COMMA: 0x2c,
  COLON: 0x3a,
  OPENING_BRACE: 0x7b,
  CLOSING_BRACE: 0x7d,
  OPENING_BRACKET: 0x5b,
  CLOSING_BRACKET: 0x5d,
  SPACE: 0x20,
} as const;
