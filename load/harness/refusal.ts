/** The code, reason and bound of an error in Connect's JSON; the first characters of anything else. */
export function refusalOf(text: string): string {
  const code = /"code":"([a-z_]+)"/.exec(text)?.[1];
  const reason = /"reason":"([A-Z_]+)"/.exec(text)?.[1];
  const bound = /"bound":"([a-z_]+)"/.exec(text)?.[1];
  if (code === undefined) return text.slice(0, 80);
  return [code, reason, bound].filter((word) => word !== undefined).join(' ');
}
