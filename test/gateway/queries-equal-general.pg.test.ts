/* Queries down both paths, by an instance that is alone. In long over every carrier. */
import { instanceForFile } from '../support/instance.ts';
import { NARROW_CALLERS } from '../support/narrow-caller.ts';
import { compareQueries } from './queries-alike.ts';

const { instance } = await instanceForFile(NARROW_CALLERS);
compareQueries(instance, ['Connect', 'gRPC'], true);
