/* Each way in which a binary can be another one, alone. */
import './supply-chain.host.test.ts';
