/* The Go of this machine builds; versions of Python from files. */
import './other-tools.host.test.ts';
