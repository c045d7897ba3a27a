/* Each of act's workflows that runs here. */
import './act-replay.host.test.ts';
