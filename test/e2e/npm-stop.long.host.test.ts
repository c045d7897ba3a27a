/* Each service, each signal, and each process that may get it. */
import './npm-stop.host.test.ts';
