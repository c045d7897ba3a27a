import { AppError } from '../../shared/app-error.ts';
import type {
  PeerCondition,
  PeerModel,
  PeerRelation,
  PeerRemark,
  PeerRule,
  PeerSubjectType,
  PeerType,
} from '../peers/peer-model.ts';
import { SchemaLexer } from './schema-lexer.ts';

/** Most characters of a schema. */
const LENGTH_MAX = 1024 * 1024;
const NESTING_MAX = 100;
/** Most members of all definitions, with partials expanded. */
const MEMBERS_MAX = 65_536;
const FLAGS = ['expiration', 'typechecking', 'self', 'partial', 'import'];
const NESTED = 'the expression';

/** A member of a definition or partial: a relation, a permission, or another partial. */
type Member = PeerRelation | { readonly partial: string; readonly place: string };

/**
 * Reads a schema of SpiceDB: definitions, caveats, partials, wildcards, expirations, arrows. Parts
 * without a counterpart here (`.all()`, `self`, arrows over arrows, imports) are in `problems`, by
 * their places. So is the first syntax error, which ends the reading. Throws nothing. O(length).
 */
export function readSpiceDbSchema(text: string): PeerModel {
  const unread = (problem: string, place = 'the schema'): PeerModel => {
    return { types: [], conditions: [], problems: [{ place, text: problem }], notes: [] };
  };
  if (text.length > LENGTH_MAX) return unread(`it is longer than ${LENGTH_MAX} characters`);
  try {
    return new SchemaReader(new SchemaLexer(text)).schema();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const [place, ...rest] = error.message.split(': ');
    return unread(rest.join(': '), place);
  }
}

class SchemaReader {
  readonly #lexer: SchemaLexer;
  readonly #flags = new Set<string>();
  readonly #definitions: { readonly type: PeerType; readonly members: readonly Member[] }[] = [];
  readonly #partials = new Map<string, readonly Member[]>();
  readonly #conditions: PeerCondition[] = [];
  readonly #problems: PeerRemark[] = [];
  readonly #notes: PeerRemark[] = [];
  #place = '';
  #members = 0;

  constructor(lexer: SchemaLexer) {
    this.#lexer = lexer;
  }

  schema(): PeerModel {
    while (this.#lexer.token.kind !== 'end') this.#statement();
    const types = this.#definitions.map(({ type, members }) => ({
      ...type,
      relations: this.#writtenOut(members, []),
    }));
    const [conditions, problems, notes] = [this.#conditions, this.#problems, this.#notes];
    return { types, conditions, problems, notes };
  }

  #statement(): void {
    const lexer = this.#lexer;
    const { at, kind } = lexer.token;
    const line = lexer.line(at);
    switch (kind === 'name' ? lexer.token.text : '') {
      case 'use':
        lexer.advance();
        if (!FLAGS.includes(lexer.token.text)) throw lexer.expected(FLAGS.join(', '));
        this.#flags.add(lexer.advance().text);
        return;
      case 'definition': {
        lexer.advance();
        const name = lexer.path('the name of a definition');
        const place = `definition ${name}`;
        const type = { name, place: `${place} (${line})`, relations: [] };
        this.#definitions.push({ type, members: this.#body(place) });
        return;
      }
      case 'partial': {
        lexer.advance();
        const name = lexer.path('the name of a partial');
        if (this.#partials.has(name)) throw lexer.problem(`the partial ${name} is there already`);
        this.#partials.set(name, this.#body(`partial ${name}`));
        return;
      }
      case 'caveat':
        this.#caveat(line);
        return;
      case 'import': {
        lexer.advance();
        const text = 'imports are not followed: compile the schema to one text first';
        this.#problems.push({ place: `import ${lexer.advance().text} (${line})`, text });
        return;
      }
      default:
        throw lexer.expected('definition, caveat, partial or use');
    }
  }

  #caveat(line: string): void {
    const lexer = this.#lexer;
    lexer.advance();
    const name = lexer.path('the name of a caveat');
    lexer.expect('(');
    const parameters: (readonly [string, string])[] = [];
    while (!lexer.is(')')) {
      const parameter = lexer.name('the name of a parameter');
      parameters.push([parameter, this.#parameterType(1)]);
      if (!lexer.is(')')) lexer.expect(',');
    }
    lexer.expect(')');
    const expression = lexer.block();
    this.#conditions.push({ name, place: `caveat ${name} (${line})`, parameters, expression });
  }

  #parameterType(nesting: number): string {
    const lexer = this.#lexer;
    const name = lexer.name('a type');
    if (!lexer.try('<')) return name;
    if (nesting > NESTING_MAX) throw lexer.problem('the type is nested too deep');
    const inner = [this.#parameterType(nesting + 1)];
    while (lexer.try(',')) inner.push(this.#parameterType(nesting + 1));
    lexer.expect('>');
    return `${name}<${inner.join(', ')}>`;
  }

  #body(owner: string): readonly Member[] {
    const lexer = this.#lexer;
    const members: Member[] = [];
    lexer.expect('{');
    while (!lexer.try('}')) {
      const line = lexer.line(lexer.token.at);
      if (lexer.try('relation')) members.push(this.#relation(owner, line));
      else if (lexer.try('permission')) members.push(this.#permission(owner, line));
      else if (lexer.try('...')) {
        members.push({ partial: lexer.path('a partial'), place: `${owner} (${line})` });
      } else throw lexer.expected('relation, permission or "}"');
    }
    return members;
  }

  #relation(owner: string, line: string): PeerRelation {
    const name = this.#lexer.name('the name of a relation');
    const place = `${owner}, relation ${name} (${line})`;
    this.#lexer.expect(':');
    const subjects = [this.#subject()];
    while (this.#lexer.try('|')) subjects.push(this.#subject());
    return { name, place, rule: { op: 'this' }, subjects };
  }

  #subject(): PeerSubjectType {
    const lexer = this.#lexer;
    const type = lexer.path('a type');
    let relation = '';
    if (lexer.try(':')) {
      lexer.expect('*');
      relation = '*';
    } else if (lexer.try('#') && !lexer.try('...')) relation = lexer.name('a relation');
    const none = { type, relation, condition: undefined, expires: false };
    if (!lexer.try('with')) return none;
    const isExpiring = (): boolean => this.#flags.has('expiration') && lexer.try('expiration');
    if (isExpiring()) return { ...none, expires: true };
    const condition = lexer.path('a caveat');
    if (!(this.#flags.has('expiration') && lexer.try('and'))) return { ...none, condition };
    if (!isExpiring()) throw lexer.expected('"expiration"');
    return { ...none, condition, expires: true };
  }

  #permission(owner: string, line: string): PeerRelation {
    const lexer = this.#lexer;
    const name = lexer.name('the name of a permission');
    this.#place = `${owner}, permission ${name} (${line})`;
    const place = this.#place;
    if (lexer.try(':')) {
      do lexer.path('a type');
      while (lexer.try('|'));
      this.#notes.push({ place, text: 'the types that it is annotated with are not kept' });
    }
    lexer.expect('=');
    return { name, place, rule: this.#expression(1), subjects: [] };
  }

  /** Reads an expression. `-` binds least, then `&`, then `+`; all are left-associative. */
  #expression(nesting: number): PeerRule {
    let rule = this.#operands('&', nesting);
    let depth = nesting;
    while (this.#lexer.try('-')) {
      this.#bound(++depth);
      rule = { op: 'exclusion', include: rule, exclude: this.#operands('&', nesting) };
    }
    return rule;
  }

  #operands(operator: '&' | '+', nesting: number): PeerRule {
    const read = (): PeerRule =>
      operator === '&' ? this.#operands('+', nesting) : this.#term(nesting);
    const children = [read()];
    while (this.#lexer.try(operator)) children.push(read());
    const [only] = children;
    if (children.length === 1 && only !== undefined) return only;
    return { op: operator === '&' ? 'intersection' : 'union', children };
  }

  #term(nesting: number): PeerRule {
    const lexer = this.#lexer;
    if (lexer.try('(')) {
      this.#bound(nesting);
      const rule = this.#expression(nesting + 1);
      lexer.expect(')');
      return rule;
    }
    if (lexer.try('nil')) return { op: 'nil' };
    if (this.#flags.has('self') && lexer.try('self')) {
      return this.#without('self is the object as its own subject, which has no form here');
    }
    const name = lexer.name('a relation or permission');
    if (lexer.try('->')) return this.#walk(name, lexer.name('a relation or permission'));
    if (!lexer.try('.')) return { op: 'computed', relation: name };
    const word = lexer.name('any or all');
    if (word !== 'any' && word !== 'all') throw lexer.problem(`.${word}() is not known`);
    lexer.expect('(');
    const computed = lexer.name('a relation or permission');
    lexer.expect(')');
    if (word === 'any') return this.#walk(name, computed);
    return this.#without(
      `${name}.all(${computed}) asks every related object for ${computed}: rules ask for any one here`,
    );
  }

  #walk(tupleset: string, computed: string): PeerRule {
    const isChain = this.#lexer.is('->') || this.#lexer.is('.');
    if (!isChain) return { op: 'walk', tupleset, computed };
    while (this.#lexer.try('->') || this.#lexer.try('.')) this.#lexer.name(NESTED);
    return this.#without('an arrow over an arrow has no form here');
  }

  #without(text: string): PeerRule {
    this.#problems.push({ place: this.#place, text });
    return { op: 'nil' };
  }

  #bound(nesting: number): void {
    if (nesting <= NESTING_MAX) return;
    throw this.#lexer.problem(`${NESTED} is nested more than ${NESTING_MAX} deep`);
  }

  /** Members, with partials replaced by their members. */
  #writtenOut(members: readonly Member[], within: readonly string[]): readonly PeerRelation[] {
    return members.flatMap((member) => {
      if (++this.#members > MEMBERS_MAX) {
        if (this.#members > MEMBERS_MAX + 1) return [];
        const text = `its definitions have more than ${MEMBERS_MAX} members`;
        this.#problems.push({ place: 'the schema', text });
        return [];
      }
      if (!('partial' in member)) return [member];
      const { partial, place } = member;
      const inner = this.#partials.get(partial);
      if (inner === undefined || within.includes(partial)) {
        const text = inner === undefined ? 'is not there' : 'contains itself';
        this.#problems.push({ place, text: `the partial ${partial} ${text}` });
        return [];
      }
      return this.#writtenOut(inner, [...within, partial]);
    });
  }
}
