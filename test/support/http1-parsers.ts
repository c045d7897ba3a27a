import { existsSync } from 'node:fs';

const { arch, platform, versions } = process;

/** Whether uWebSockets.js has a binary for this Node.js; where it has none node:http reads all of HTTP/1.1. */
export const LOADS_UWS = existsSync(
  `node_modules/uWebSockets.js/dist/bin/uws_${platform}_${arch}_${versions.modules}.node`,
);

/** The readers of HTTP/1.1 that there are here. */
export const PARSERS: readonly ('uws' | 'node')[] = LOADS_UWS ? ['uws', 'node'] : ['node'];

/** Whether an event is what every listener says where uWebSockets.js has no binary. */
export function isOfPlatform(event: string | undefined): boolean {
  return event === 'http1_on_node' && !LOADS_UWS;
}
