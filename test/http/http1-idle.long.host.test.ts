/* Requests at the moment of the close by more clients: Node's agent, undici, a pool of Go. */
import './http1-idle.host.test.ts';
