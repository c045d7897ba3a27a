/** A test of a file, as a JUnit test case. */
export type JunitCase = {
  readonly name: string;
  /** Assertions that were evaluated. */
  readonly assertions: number;
  /** Failed assertions, one line each. */
  readonly failures: readonly string[];
};

/** A file of tests, as a JUnit test suite. */
export type JunitSuite = {
  readonly file: string;
  readonly cases: readonly JunitCase[];
  /** The reason why its tests could not run; undefined if they ran. */
  readonly error: string | undefined;
};

type JunitCounts = { readonly tests: number; readonly failures: number; readonly errors: number };

/**
 * Characters that XML 1.0 forbids, even as references: most controls, unpaired surrogates and two
 * more.
 */
const FORBIDDEN = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;
const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};
const INSTEAD = '\uFFFD';

/**
 * A document of JUnit XML, in the form of the Ant task, which services of continuous integration
 * read. It has a suite for each file and a case for each test. Characters that XML cannot hold
 * become U+FFFD. O(size).
 */
export function junitXml(suites: readonly JunitSuite[]): string {
  const counts = suites.map(countsOf);
  const all = {
    tests: sum(counts.map(({ tests }) => tests)),
    failures: sum(counts.map(({ failures }) => failures)),
    errors: sum(counts.map(({ errors }) => errors)),
  };
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes({ name: 'gatehouse model test', ...all })}>`,
    ...suites.flatMap(suiteLines),
    '</testsuites>',
    '',
  ].join('\n');
}

function suiteLines(suite: JunitSuite): readonly string[] {
  const { file, cases, error } = suite;
  const lines = cases.map(({ name, assertions, failures }) => {
    const start = `    <testcase${attributes({ classname: file, name, file, assertions })}`;
    const [first] = failures;
    if (first === undefined) return `${start}/>`;
    const failure = `<failure${attributes({ message: first, type: 'assertion' })}>`;
    return `${start}>${failure}${text(failures.join('\n'))}</failure></testcase>`;
  });
  if (error !== undefined) {
    const start = `    <testcase${attributes({ classname: file, name: file, file })}>`;
    const message = `<error${attributes({ message: error, type: 'file' })}>${text(error)}</error>`;
    lines.push(`${start}${message}</testcase>`);
  }
  return [
    `  <testsuite${attributes({ name: file, ...countsOf(suite) })}>`,
    ...lines,
    '  </testsuite>',
  ];
}

function countsOf({ cases, error }: JunitSuite): JunitCounts {
  const errors = error === undefined ? 0 : 1;
  const failures = cases.filter((one) => one.failures.length > 0).length;
  return { tests: cases.length + errors, failures, errors };
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${attribute(String(value))}"`)
    .join('');
}

function attribute(value: string): string {
  return allowed(value).replaceAll(/[&<>"\t\n\r]/g, (found) => ESCAPES[found] ?? found);
}

/** Escapes text. Line breaks and tabs stay; a carriage return would be read as a line break. */
function text(value: string): string {
  return allowed(value).replaceAll(/[&<>\r]/g, (found) => ESCAPES[found] ?? found);
}

function allowed(value: string): string {
  return value.toWellFormed().replaceAll(FORBIDDEN, INSTEAD);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
