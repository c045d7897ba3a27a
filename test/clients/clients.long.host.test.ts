/* Clients that a compiler or an interpreter must make first: Go, Python. */
import './clients.host.test.ts';
