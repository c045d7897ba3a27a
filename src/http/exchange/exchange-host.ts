import type { BodyBudget } from '../bodies/body-budget.ts';
import type { BodyDeadlines } from '../bodies/body-deadlines.ts';
import type { HeaderFields } from './header-fields.ts';
import type { UnreadAnswers } from './unread-answers.ts';

/** Server of an exchange: its limits, and the tables that all exchanges share. */
export interface ExchangeHost {
  readonly isDraining: boolean;
  readonly discardBytesMax: number;
  readonly bodyDeadlines: BodyDeadlines;
  readonly bodyBudget: BodyBudget;
  readonly unread: UnreadAnswers;
  /** Fields of the request that is being handled. */
  readonly headerFields: HeaderFields;
  readonly inFlight: {
    exchangeBegan(): void;
    exchangeEnded(): void;
  };
}
