/** Programs that read their own arguments: `gatehouse NAME …` is theirs to the end of the line. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  serve: 'starts the authorization service; --instances N, --testing',
  runner: 'runs workflows; what gatehouse-runner is',
  load: 'drives load at a service',
  verify: 'disturbs instances, and checks whether every answer was fresh',
};
