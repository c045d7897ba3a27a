const GRPC_DIGITS_MAX = 8;
const CONNECT_DIGITS_MAX = 10;

/** Hot. Milliseconds of a Connect-Timeout-Ms, 0 where it is ill-formed. O(length), allocates nothing. */
export function connectTimeoutMs(text: string): number {
  return text.length > CONNECT_DIGITS_MAX ? 0 : digitsOf(text, text.length);
}

/** Hot. Milliseconds of a grpc-timeout, 0 where it is ill-formed. O(length), allocates nothing. */
export function grpcTimeoutMs(text: string): number {
  const digits = text.length - 1;
  if (digits > GRPC_DIGITS_MAX) return 0;
  return digitsOf(text, digits) * msOfUnit(text.charCodeAt(digits));
}

/** The number in the first `count` characters, 0 where one of them is no digit. */
function digitsOf(text: string, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return 0;
    value = value * 10 + digit;
  }
  return value;
}

/** Milliseconds of gRPC's units H, M, S, m, u and n. */
function msOfUnit(code: number): number {
  switch (code) {
    case 0x48:
      return 3_600_000;
    case 0x4d:
      return 60_000;
    case 0x53:
      return 1_000;
    case 0x6d:
      return 1;
    case 0x75:
      return 0.001;
    case 0x6e:
      return 0.000_001;
    default:
      return 0;
  }
}
