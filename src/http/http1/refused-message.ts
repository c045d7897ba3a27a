/** The body of the answer to a message that is refused for its form: JSON as of other errors. */
export function refusedMessageBody(problem: string): string {
  return `{"code":"invalid_argument","message":${JSON.stringify(problem)},"details":[]}`;
}
