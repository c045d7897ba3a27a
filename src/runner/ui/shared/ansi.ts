/** A piece of a line in one style; `classes` are those of the style sheet, '' for none. */
export type StyledText = { readonly text: string; readonly classes: string };

const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;
const SEQUENCE =
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  /\u001b\[([0-9;:]*)m|\u001b(?:\[[0-9;:?<=>]*[ -/]*[@-~]?|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[^[\]])?|[\u0000-\u0008\u000b-\u001f\u007f]/g;

type AnsiStyle = {
  fore: string;
  back: string;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
};

/**
 * A line of a log in its colours and weights (ECMA-48 SGR): the sixteen colours; of 256 and true colours
 * the nearest one. All other control sequences are left out. Styles do not go on to the next line.
 */
export function styledText(line: string): readonly StyledText[] {
  const pieces: StyledText[] = [];
  const style = plainStyle();
  let at = 0;
  for (const found of line.matchAll(SEQUENCE)) {
    if (found.index > at)
      pieces.push({ text: line.slice(at, found.index), classes: classesOf(style) });
    at = found.index + found[0].length;
    if (found[1] !== undefined) apply(style, found[1]);
  }
  if (at < line.length) pieces.push({ text: line.slice(at), classes: classesOf(style) });
  return pieces;
}

function plainStyle(): AnsiStyle {
  return { fore: '', back: '', bold: false, dim: false, italic: false, underline: false };
}

function apply(style: AnsiStyle, parameters: string): void {
  const codes = parameters.split(/[;:]/).map(Number);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 38 || code === 48) {
      const isIndexed = codes[i + 1] === 5;
      const color = isIndexed ? indexed(codes[i + 2] ?? 0) : nearest(codes.slice(i + 2, i + 5));
      if (code === 38) style.fore = color;
      else style.back = color;
      i += isIndexed ? 2 : 4;
    } else applyOne(style, code);
  }
}

function applyOne(style: AnsiStyle, code: number): void {
  if (code === 0) Object.assign(style, plainStyle());
  else if (code === 1) style.bold = true;
  else if (code === 2) style.dim = true;
  else if (code === 3) style.italic = true;
  else if (code === 4) style.underline = true;
  else if (code === 22) style.bold = style.dim = false;
  else if (code === 23) style.italic = false;
  else if (code === 24) style.underline = false;
  else if (code === 39) style.fore = '';
  else if (code === 49) style.back = '';
  else if (code >= 30 && code <= 37) style.fore = COLORS[code - 30] ?? '';
  else if (code >= 90 && code <= 97) style.fore = `bright-${COLORS[code - 90]}`;
  else if (code >= 40 && code <= 47) style.back = COLORS[code - 40] ?? '';
  else if (code >= 100 && code <= 107) style.back = COLORS[code - 100] ?? '';
}

/** Of the 256 colours: 16 named ones, a cube of six levels, 24 greys. */
function indexed(index: number): string {
  if (index < 8) return COLORS[index] ?? '';
  if (index < 16) return `bright-${COLORS[index - 8]}`;
  if (index >= 232) return index < 244 ? 'bright-black' : 'white';
  const cube = index - 16;
  return nearest(
    [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((level) => level * 51),
  );
}

function nearest(rgb: readonly number[]): string {
  const [red = 0, green = 0, blue = 0] = rgb;
  const max = Math.max(red, green, blue);
  if (max < 48) return 'black';
  const bits = [red, green, blue].map((level, bit) => (level > max / 2 ? 1 << bit : 0));
  const name = COLORS[bits.reduce((sum, bit) => sum + bit, 0)] ?? 'white';
  return max > 192 ? `bright-${name}` : name;
}

function classesOf({ fore, back, bold, dim, italic, underline }: AnsiStyle): string {
  const classes: string[] = [];
  if (fore !== '') classes.push(`fg-${fore}`);
  if (back !== '') classes.push(`bg-${back}`);
  if (bold) classes.push('bold');
  if (dim) classes.push('dim');
  if (italic) classes.push('italic');
  if (underline) classes.push('underline');
  return classes.join(' ');
}
