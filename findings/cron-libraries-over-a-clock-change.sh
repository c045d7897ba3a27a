#!/usr/bin/env bash
# Subject: next times of a five-field cron expression in a time zone: croner 10.0.1, cron-parser 5.10.6, cron 4.4.0
#          and cronosjs 1.7.1, Node.js.
# Guess:   they agree on a plain expression with lists and steps, so that one can take the place of another.
# Instead: over the changes of the clock of Europe/Berlin in 2026 they differ in each of three expressions, and no two of them always agree.
#          `0,20,40 2 * * *` when 2:00 to 3:00 is skipped: three runs with cron-parser, one with the others.
#          `30 2 * * *` on that day: 3:30 with croner and cron-parser, 3:00 with cron and cronosjs.
#          `15 * * * *` when 2:00 to 3:00 comes twice: in both hours with cron and cron-parser, in one with croner and
#          cronosjs. `20/15 * * * *` is refused by croner in its mode of five fields; the others read 20, 35, 50.
# Met:     GitHub's manual has `20/15 * * * *`, and a schedule with a time zone was to come once each local time.
# Needs npm and Node.js 20 or newer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . croner@10.0.1 cron-parser@5.10.6 cron@4.4.0 cronosjs@1.7.1 luxon@3.7.2
cat >run.mjs <<'JS'
import { CronTime } from 'cron';
import { CronExpressionParser } from 'cron-parser';
import { Cron } from 'croner';
import { CronosExpression } from 'cronosjs';
import { DateTime } from 'luxon';

const zone = 'Europe/Berlin';
const shown = (date) => `${new Date(date).toISOString().slice(5, 16)}Z`;
function series(next, from, count) {
  const times = [];
  for (let at = from; times.length < count; ) times.push((at = next(at)));
  return times.map(shown).join(' ');
}
const libraries = {
  croner(cron, from, count) {
    const schedule = new Cron(cron, { timezone: zone, mode: '5-part', paused: true });
    return series((at) => schedule.nextRun(at), from, count);
  },
  'cron-parser'(cron, from, count) {
    const schedule = CronExpressionParser.parse(cron, { currentDate: from, tz: zone });
    return series(() => schedule.next().toDate(), from, count);
  },
  cron(cron, from, count) {
    const schedule = new CronTime(cron, zone);
    const next = (at) => schedule.getNextDateFrom(DateTime.fromJSDate(at, { zone }), zone).toJSDate();
    return series(next, from, count);
  },
  cronosjs(cron, from, count) {
    const schedule = CronosExpression.parse(cron, { timezone: zone });
    return series((at) => schedule.nextDate(at), from, count);
  },
};
const forward = new Date('2026-03-28T12:00:00Z');
const back = new Date('2026-10-25T00:00:00Z');
const three = '03-29T01:00Z 03-29T01:20Z 03-29T01:40Z 03-30T00:00Z';
const one = '03-29T01:00Z 03-30T00:00Z 03-30T00:20Z 03-30T00:40Z';
const later = '03-29T01:30Z 03-30T00:30Z';
const atOnce = '03-29T01:00Z 03-30T00:30Z';
const twice = '10-25T00:15Z 10-25T01:15Z 10-25T02:15Z';
const once = '10-25T00:15Z 10-25T02:15Z 10-25T03:15Z';
const steps = '10-25T00:20Z 10-25T00:35Z 10-25T00:50Z';
// In the order of `libraries`.
const rows = [
  ['0,20,40 2 * * *', forward, [one, three, one, one]],
  ['30 2 * * *', forward, [later, later, atOnce, atOnce]],
  ['15 * * * *', back, [once, twice, twice, once]],
  ['20/15 * * * *', back, ['refused', steps, steps, steps]],
];
let isAsStated = true;
for (const [cron, from, stated] of rows) {
  console.log(`${cron} after ${from.toISOString()} in ${zone}`);
  for (const [index, [name, timesOf]] of Object.entries(libraries).entries()) {
    let seen;
    try {
      seen = timesOf(cron, from, stated[index] === 'refused' ? 3 : stated[index].split(' ').length);
    } catch {
      seen = 'refused';
    }
    isAsStated &&= seen === stated[index];
    console.log(`  ${name.padEnd(12)}${seen}`);
  }
}
console.log(isAsStated ? 'as stated' : 'NOT as stated');
process.exit(isAsStated ? 0 : 1);
JS
node run.mjs
