/** A header of HTTP/2 as one text: several values joined as HTTP/1.1 joins them, '' when absent. */
export function headerText(value: string | readonly string[] | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : value.join(', ');
}

/** The path of a request target, without its query. */
export function pathOfTarget(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

/** The media type that a content type names: without parameters, in lower case. */
export function mediaTypeOf(contentType: string): string {
  const end = contentType.indexOf(';');
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}
