/* Many times as many answers of the replicas under load. */
import './thread-replicas.pg.test.ts';
