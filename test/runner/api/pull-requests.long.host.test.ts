/* Reruns, tags, merges of the host, first-time authors and queues of pull requests. */
import './pull-requests.host.test.ts';
