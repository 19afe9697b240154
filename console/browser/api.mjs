// The daemon's interface, asked by the tests themselves: to prepare, and to do what somebody else does.
import { request } from 'playwright-core';
import { LIMIT } from './launch.mjs';

const ROOT = '/redfish/v1';
const SESSIONS = `${ROOT}/SessionService/Sessions`;

export class Api {
  /** Logs in. */
  static async begin(origin, user, password) {
    const own = new Api();
    own.asking = await request.newContext({ baseURL: origin, ignoreHTTPSErrors: true, timeout: LIMIT });
    const data = { UserName: user, Password: password };
    const answer = await own.asking.post(SESSIONS, { data });
    if (answer.status() !== 201) throw new Error(`no login as ${user}: ${await answer.text()}`);
    own.token = answer.headers()['x-auth-token'];
    return own;
  }

  /** Asks; the answer's object. What destroys is confirmed by the token of its plan. */
  async ask(method, path, data, more = {}) {
    const headers = { 'X-Auth-Token': this.token, ...more };
    const options = { method, headers, ...(data === undefined ? {} : { data }) };
    const answer = await this.asking.fetch(path.startsWith('/') ? path : `${ROOT}/${path}`, options);
    const text = await answer.text();
    const body = text === '' ? {} : JSON.parse(text);
    if (body.Token && body.Plan && answer.status() >= 400) {
      return this.ask(method, path, data, { ...more, 'Palisade-Confirm': body.Token });
    }
    if (answer.status() >= 400) throw new Error(`${method} ${path}: ${answer.status()} ${text}`);
    return body;
  }

  get(path) {
    return this.ask('GET', path);
  }

  post(path, data) {
    return this.ask('POST', path, data);
  }

  /** The members of a collection. */
  async all(path) {
    return (await this.get(`${path}?$expand=.`)).Members;
  }

  /** An account with a password; one of that name goes first. */
  async account(name, role, password) {
    await this.forget(name);
    const data = { UserName: name, Password: password, RoleId: role };
    return this.post('AccountService/Accounts', data);
  }

  /** Deletes an account, if it is there. */
  async forget(name) {
    const known = await this.all('AccountService/Accounts');
    const own = known.find((one) => one.UserName === name);
    if (own) await this.ask('DELETE', own['@odata.id']);
  }

  /** Ends all sessions of a user but this one's. */
  async expire(user) {
    for (const session of await this.all('SessionService/Sessions')) {
      if (session.UserName === user) await this.ask('DELETE', session['@odata.id']);
    }
  }

  end() {
    return this.asking.dispose();
  }
}
