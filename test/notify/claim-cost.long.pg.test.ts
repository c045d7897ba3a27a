/* Claims beside a million deliveries, instead of thirty thousand. */
import './claim-cost.pg.test.ts';
