/* A million deliveries that wait, not 20,000. */
import './waiting-claims.pg.test.ts';
