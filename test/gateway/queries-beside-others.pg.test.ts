/* Queries down both paths, by an instance beside others, which asks for the head. In long over every carrier, and the odd ones. */
import { instanceForFile } from '../support/instance.ts';
import { NARROW_CALLERS } from '../support/narrow-caller.ts';
import { compareQueries } from './queries-alike.ts';

const { instance } = await instanceForFile(NARROW_CALLERS, () => false);
compareQueries(instance, ['gRPC-Web'], false);
