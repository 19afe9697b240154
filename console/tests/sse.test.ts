import { expect, test } from 'vitest';
import { Parser, type Message } from '../src/lib/sse';

/** The same by the standard's words, of a whole text at once. */
function naive(text: string): Message[] {
  const found: Message[] = [];
  let id: string | null = null;
  let data: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/).slice(0, -1)) {
    if (line === '') {
      if (data.length > 0) found.push({ id, data: data.join('\n') });
      data = [];
    } else if (/^data:?/.test(line) && (line === 'data' || line[4] === ':')) {
      data.push(line.slice(5).replace(/^ /, ''));
    } else if (line.startsWith('id:')) {
      id = line.slice(3).replace(/^ /, '');
    }
  }
  return found;
}

const TEXT =
  ':\nid: 7\n\nid: 8\ndata: {"a":1}\n\ndata: one\ndata:two\n\n\n\ndata\n\nevent: x\r\ndata: µ\r\n\r\nid:9\rdata: last\r\rdata: cut';

test('a stream is the same however it is cut', () => {
  const whole = naive(TEXT);
  expect(whole.map((own) => own.data)).toEqual(['{"a":1}', 'one\ntwo', '', 'µ', 'last']);
  for (let size = 1; size <= TEXT.length; size += 1) {
    const parser = new Parser();
    const found: Message[] = [];
    for (let at = 0; at < TEXT.length; at += size) found.push(...parser.push(TEXT.slice(at, at + size)));
    expect(found, `parts of ${size}`).toEqual(whole);
    expect(parser.lastId).toBe('9');
  }
});

test('a comment with an identifier moves only the identifier', () => {
  const parser = new Parser();
  expect(parser.push(':\nid: 42\n\n')).toEqual([]);
  expect(parser.lastId).toBe('42');
  expect(parser.push('data: x\n\n')).toEqual([{ id: '42', data: 'x' }]);
});
