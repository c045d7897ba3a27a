/* Clients that a compiler or an interpreter must make first: Go, Python; the TypeScript one of all of proto/, and its types. */
import './clients.host.test.ts';
