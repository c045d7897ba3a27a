/* Ten times as many random expressions and inputs. */
import './declared-condition.test.ts';
