/**
 * Leaves the packages that others install as tarballs in dist/, or in the folder that is named: `npm run pack`. Each is
 * built anew in a folder of its own there, as JavaScript, since Node.js runs no TypeScript below node_modules.
 */
import { packClient } from './pack/pack-client.ts';
import { packEngine } from './pack/pack-engine.ts';
import { packServices } from './pack/pack-services.ts';

const [out = 'dist'] = process.argv.slice(2);
packClient(out);
packEngine(out);
packServices(out);
