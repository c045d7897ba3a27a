import type { BodyBudget } from '../bodies/body-budget.ts';
import type { BodyDeadlines } from '../bodies/body-deadlines.ts';
import type { HeaderFields } from './header-fields.ts';
import type { UnreadAnswers } from './unread-answers.ts';

/** What an exchange needs of its server. */
export interface ExchangeHost {
  readonly isDraining: boolean;
  readonly discardBytesMax: number;
  readonly bodyDeadlines: BodyDeadlines;
  readonly bodyBudget: BodyBudget;
  readonly unread: UnreadAnswers;
  /** Of the request that is being taken. */
  readonly headerFields: HeaderFields;
  readonly inFlight: {
    exchangeBegan(): void;
    exchangeEnded(): void;
  };
}
