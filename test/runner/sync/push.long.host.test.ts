/* Stacks whose commits change places or go, other hosts, and pushes at other moments. */
import './push.host.test.ts';
