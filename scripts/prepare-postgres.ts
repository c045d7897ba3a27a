import { prepareTemplate } from '../src/store/embedded/embedded-postgres-cluster.ts';

// The end of an installation: an empty database that the first start copies. Without it that start
// makes its own.
await prepareTemplate();
