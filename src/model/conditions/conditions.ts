import { compareInstants, parseInstant, type Instant } from '../../shared/time/instant.ts';
import type { CostMeter } from '../cel/cel-meter.ts';
import { isInNetwork, type Network, parseAddress, parseCidr } from '../cel/ip-address.ts';

/** Outcomes of a condition. It is undecided for an unknown name, a missing input or an ill-typed value. */
export const CONDITION_FALSE = 0;
export const CONDITION_TRUE = 1;
export const CONDITION_UNDECIDED = 2;
export type ConditionOutcome = 0 | 1 | 2;

/** Context of a request; only own properties count. */
export type ConditionContext = { readonly [key: string]: unknown };

/**
 * A condition bound to its static parameters. Pure. A built-in one costs O(parameters + context values read). One that
 * a model declares counts its work on `meter`, by default within its own limit.
 */
export type PreparedCondition = (context: ConditionContext, meter?: CostMeter) => ConditionOutcome;

/** Context of a query, parsed when a condition first needs it. */
export interface LazyContext {
  /** Returns the context, the same one each time. Undefined if it is no object, so that nothing is decided. */
  value(): ConditionContext | undefined;
}

type Parameters = { readonly [key: string]: unknown };

const undecided: PreparedCondition = () => CONDITION_UNDECIDED;
const EMPTY: ConditionContext = Object.freeze(Object.create(null)) as ConditionContext;

type BuiltIn = {
  readonly prepare: (params: Parameters) => PreparedCondition;
  /** Parameters that a tuple must have for its condition ever to be decided. */
  readonly required: readonly string[];
  /** Problem of the given parameters, if they leave the condition undecided for every request. */
  readonly fault: (params: Parameters) => string;
  /** Inputs that it reads from the request; any of them is enough. */
  readonly inputs: readonly string[];
  /** Expected form of an input, for one that is present but decides nothing. */
  readonly wants: (params: Parameters) => string;
};

const BUILT_INS: ReadonlyMap<string, BuiltIn> = new Map([
  [
    'consent_granted',
    {
      prepare: prepareConsentGranted,
      required: [],
      fault: () => 'must be a string',
      inputs: ['consent'],
      wants: (params: Parameters) =>
        Object.hasOwn(params, 'purpose')
          ? 'a bool or a list of strings'
          : 'a bool, since the tuple names no purpose to look for in a list',
    },
  ],
  [
    'age_at_least',
    {
      prepare: prepareAgeAtLeast,
      required: ['min_age'],
      fault: () => 'must be a number',
      inputs: ['age'],
      wants: () => 'a number',
    },
  ],
  [
    'ip_in_cidrs',
    {
      prepare: prepareIpInCidrs,
      required: ['cidrs'],
      fault: ({ cidrs }: Parameters) =>
        isStringList(cidrs)
          ? `is not a list of networks like 10.0.0.0/8: entry ${cidrs.findIndex((cidr) => parseCidr(cidr) === undefined)} is none`
          : 'must be a list of networks like 10.0.0.0/8',
      inputs: ['ip'],
      wants: () => 'an address',
    },
  ],
  [
    'not_after',
    {
      prepare: prepareNotAfter,
      required: ['not_after'],
      fault: () => 'must be a timestamp like 2026-01-31T00:00:00Z',
      inputs: ['now'],
      wants: () => 'a timestamp like 2026-01-31T00:00:00Z',
    },
  ],
  [
    'scope_in',
    {
      prepare: prepareScopeIn,
      required: ['scopes'],
      fault: () => 'must be a list of strings',
      inputs: ['scope', 'scopes'],
      wants: () => 'a string, or scopes a list of strings',
    },
  ],
]);

/** Names of the built-in conditions, which every model has. */
export const BUILT_IN_CONDITIONS: ReadonlySet<string> = new Set(BUILT_INS.keys());

/**
 * Binds the built-in condition `name` to `paramsJson` (JSON text of an object, or ''). Missing or ill-typed parameters,
 * and unknown names, result in a condition that is always undecided.
 */
export function prepareCondition(name: string, paramsJson: string): PreparedCondition {
  const condition = BUILT_INS.get(name);
  if (condition === undefined) return undecided;
  const params = parseContext(paramsJson);
  return params === undefined ? undecided : condition.prepare(params);
}

/**
 * Problem of the parameters of a tuple's built-in condition, with the parameter that has it. Undefined if some request
 * decides the condition, or if it is not a built-in one.
 */
export function builtInParametersFault(
  name: string,
  paramsJson: string,
): { readonly parameter: string; readonly problem: string } | undefined {
  const condition = BUILT_INS.get(name);
  const params = parseContext(paramsJson);
  if (condition === undefined || params === undefined) return undefined;
  const lacking = condition.required.find((parameter) => !Object.hasOwn(params, parameter));
  if (lacking !== undefined) return { parameter: lacking, problem: 'is required by the condition' };
  if (condition.prepare(params) !== undecided) return undefined;
  const [parameter = Object.keys(params)[0] ?? ''] = condition.required;
  return { parameter, problem: condition.fault(params) };
}

/**
 * Parses the context of a request from its JSON text. '' results in an empty context. Undefined if the text is no
 * object.
 */
export function parseContext(json: string): ConditionContext | undefined {
  if (json === '') return EMPTY;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as ConditionContext;
  } catch (error) {
    // The edge validates context and parameters. Text that is not JSON decides nothing.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Inputs that a built-in condition reads from the request, and why they do not decide it. */
export type BuiltInLack = { readonly inputs: readonly string[]; readonly reason: string };

/**
 * Inputs of the request that a built-in condition reads, if it is undecided because they are missing or ill-typed.
 * Undefined if it is decided, or no request could decide it.
 */
export function lackOfBuiltIn(
  name: string,
  paramsJson: string,
  context: ConditionContext,
): BuiltInLack | undefined {
  const condition = BUILT_INS.get(name);
  const prepared = prepareCondition(name, paramsJson);
  if (condition === undefined || prepared === undecided) return undefined;
  if (prepared(context) !== CONDITION_UNDECIDED) return undefined;
  const { inputs } = condition;
  const isGiven = inputs.some((input) => Object.hasOwn(context, input));
  const reason = isGiven
    ? `${inputs[0]} in the context must be ${condition.wants(parseContext(paramsJson) ?? EMPTY)}`
    : `the context lacks ${inputs.join(' or ')}`;
  return { inputs, reason };
}

function prepareConsentGranted(params: Parameters): PreparedCondition {
  const hasPurpose = Object.hasOwn(params, 'purpose');
  const purpose = params['purpose'];
  if (hasPurpose && typeof purpose !== 'string') return undecided;
  return (context) => {
    const consent = own(context, 'consent');
    if (typeof consent === 'boolean') return consent ? CONDITION_TRUE : CONDITION_FALSE;
    // A list contains purposes: without a purpose to find, it decides nothing.
    if (!hasPurpose || !isStringList(consent)) return CONDITION_UNDECIDED;
    return consent.includes(purpose as string) ? CONDITION_TRUE : CONDITION_FALSE;
  };
}

function prepareAgeAtLeast(params: Parameters): PreparedCondition {
  const minAge = own(params, 'min_age');
  if (typeof minAge !== 'number' || !Number.isFinite(minAge)) return undecided;
  return (context) => {
    const age = own(context, 'age');
    if (typeof age !== 'number' || !Number.isFinite(age)) return CONDITION_UNDECIDED;
    return age >= minAge ? CONDITION_TRUE : CONDITION_FALSE;
  };
}

function prepareIpInCidrs(params: Parameters): PreparedCondition {
  const cidrs = own(params, 'cidrs');
  if (!isStringList(cidrs)) return undecided;
  const networks: Network[] = [];
  for (const cidr of cidrs) {
    const network = parseCidr(cidr);
    if (network === undefined) return undecided;
    networks.push(network);
  }
  return (context) => {
    const ip = own(context, 'ip');
    const address = typeof ip === 'string' ? parseAddress(ip) : undefined;
    if (address === undefined) return CONDITION_UNDECIDED;
    return networks.some((network) => isInNetwork(address, network))
      ? CONDITION_TRUE
      : CONDITION_FALSE;
  };
}

function prepareNotAfter(params: Parameters): PreparedCondition {
  const limit = instantOf(own(params, 'not_after'));
  if (limit === undefined) return undecided;
  return (context) => {
    const now = instantOf(own(context, 'now'));
    if (now === undefined) return CONDITION_UNDECIDED;
    return compareInstants(now, limit) <= 0 ? CONDITION_TRUE : CONDITION_FALSE;
  };
}

function instantOf(value: unknown): Instant | undefined {
  return typeof value === 'string' ? parseInstant(value) : undefined;
}

function prepareScopeIn(params: Parameters): PreparedCondition {
  const scopes = own(params, 'scopes');
  if (!isStringList(scopes)) return undecided;
  const allowed = new Set(scopes);
  return (context) => {
    const text = own(context, 'scope');
    const list = own(context, 'scopes');
    if (text === undefined && list === undefined) return CONDITION_UNDECIDED;
    if (text !== undefined && typeof text !== 'string') return CONDITION_UNDECIDED;
    if (list !== undefined && !isStringList(list)) return CONDITION_UNDECIDED;
    const given = [...(text ?? '').split(' '), ...(list ?? [])];
    return given.some((scope) => scope !== '' && allowed.has(scope))
      ? CONDITION_TRUE
      : CONDITION_FALSE;
  };
}

function own(object: { readonly [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
