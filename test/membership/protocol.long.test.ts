/* Worlds of more states, and rules whose loss shows only in them. */
import './protocol.test.ts';
